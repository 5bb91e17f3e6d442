"""What all pages have in common: markup that text cannot break, one look, and the document around them."""
