"""How fast is a program beside a baseline, once its results are shown to be right?"""
