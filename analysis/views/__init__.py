"""Views of a run at a moment: tables and pictures, live or played back.

Each view is a pair: a pandas table and a matplotlib picture.
"""
