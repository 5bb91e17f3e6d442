"""Role play with facts that can be checked: keywords, and generated checkers that had to earn their place."""
