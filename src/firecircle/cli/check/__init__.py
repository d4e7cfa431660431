"""`firecircle check`: the prompt files of a repository, each judged as what it is."""
