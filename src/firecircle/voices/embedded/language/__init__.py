"""Reading a prompt's language: sentences, words, orders and what they reach for."""
