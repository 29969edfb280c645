"""Programs behind the Makefile: bring everything up, show it, check it, test it.

They run from the checkout's virtual environment, print one line per step with its time, are safe to repeat
and say what to do when something is missing. Nothing in here is part of the product.
"""
