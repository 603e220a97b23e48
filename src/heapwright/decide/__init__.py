"""What to ship, and what to reserve for it: fronts, picks, and the evidence for them."""
