"""Classes in the names of files, on request."""


def test_a_pattern_finds_the_class(tree, labelled):
    root = tree("cat.{}.jpg", "dog.{}.jpg")
    assert labelled(root, label_pattern=r"^(cat|dog)\.")["dog.2.jpg"] == "dog"


def test_without_the_request_such_files_are_refused(tree, refused):
    assert "cat.1.jpg" in refused(tree("cat.{}.jpg", "dog.{}.jpg")).received


def test_files_without_a_class_are_named_in_training_and_left_out_of_a_test_set(tree, refused, listed):
    root = tree("train/cat.{}.jpg", "train/dog.{}.jpg", "test/{}.jpg")
    found = listed(root, label_pattern="cat|dog")
    assert found.classes == ["cat", "dog"]
    assert "3 left out (without a class in their names): test/1.jpg" in str(found.left_out[0])
    assert "1.jpg" in refused(tree("train/1.jpg"), label_pattern="cat|dog").received
