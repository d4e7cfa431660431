"""Whole conversations: every user turn judged with what came before, and what they add up to.

`messages` reads conversations in the shapes that chats are exported in, `judging` judges them turn by turn,
`evidence` checks claims about the past and what the assistant gave away, `arc` puts the turns together.
"""
