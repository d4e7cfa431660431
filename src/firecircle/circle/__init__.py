"""The dialogue. It uses the Voice protocol, and no provider, file, database or screen."""
