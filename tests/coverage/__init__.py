"""What other systems' documents describe, row by row: each row is a test, the pages list them."""
