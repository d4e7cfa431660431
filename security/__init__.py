"""What keeps watch over what this project depends on."""
