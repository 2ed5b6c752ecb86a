"""The columns of a table through time: lanes, their places in a picture, and changes in words."""
