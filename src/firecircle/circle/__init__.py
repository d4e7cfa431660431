"""The dialogue. Knows the Voice protocol; knows no provider, file, database or screen."""
