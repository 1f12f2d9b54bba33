"""A folder of images for each class."""


def test_classes_are_their_folders_and_what_lies_beside_is_told(tree, labelled, listed):
    root = tree("cat/{}.png", "Dog/{}.jpg", "notes.txt", "cat/Thumbs.db")
    assert labelled(root)["Dog/1.jpg"] == "Dog"
    assert listed(root).classes == ["Dog", "cat"]
    assert [each.names for each in listed(root).left_out] == [("notes.txt",), ("cat/Thumbs.db",)]


def test_a_class_in_validation_alone_is_named(tree, refused):
    root = tree("train/a/{}.png", "train/b/{}.png", "val/c/1.png")
    assert "'c'" in refused(root).received
    assert "val/c/1.png" in refused(root).received
