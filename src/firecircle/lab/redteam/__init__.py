"""The circle under attack: payloads for evaluators, members that cheat, and what came of them."""
