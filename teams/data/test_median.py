from median import median

given = [3, 1, 2]
assert median(given) == 2, "of an odd number"
assert median([4, 1, 3, 2]) == 2.5, "of an even number"
assert given == [3, 1, 2], "the list that was given is changed"
print("3 tests passed")
