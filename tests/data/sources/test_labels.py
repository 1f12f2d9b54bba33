"""Images whose class is the name of their folder or part of their own name."""

import json

import pytest

from data_settings import data_of
from scalestudy.data.sources.labels import _read_table
from scalestudy.data.sources.layouts import list_table
from scalestudy.util.errors import UserError


def test_classes_are_their_folders_and_what_lies_beside_is_told(tree, labelled, listed):
    root = tree("cat/{}.png", "Dog/{}.jpg", "notes.txt", "cat/Thumbs.db")
    assert labelled(root)["Dog/1.jpg"] == "Dog"
    assert listed(root).classes == ["Dog", "cat"]
    assert [each.names for each in listed(root).left_out] == [("notes.txt",), ("cat/Thumbs.db",)]


def test_a_class_in_validation_alone_is_named(tree, refused):
    root = tree("train/a/{}.png", "train/b/{}.png", "val/c/1.png")
    assert "'c'" in refused(root).received
    assert "val/c/1.png" in refused(root).received


def test_all_classes_without_an_image_are_named_at_once(tree, refused):
    root = tree("cat/{}.png", "dog/{}.png", "cow/notes.txt")
    for number in range(9):
        (root / f"empty{number}").mkdir()
    received = refused(root).received
    assert str(root / "cow") in received and str(root / "empty0") in received
    assert received.endswith("and 5 more")


def test_a_pattern_finds_the_class_and_files_without_one_are_named_or_left_out_of_a_test_set(
    tree, refused, listed, labelled
):
    root = tree("train/cat.{}.jpg", "train/dog.{}.jpg", "test/{}.jpg")
    listing = listed(root, label_pattern=r"/?(cat|dog)\.")
    assert listing.classes == ["cat", "dog"]
    assert labelled(root, label_pattern="cat|dog")["train/dog.2.jpg"] == "dog"
    assert "3 left out (without a class in their names): test/1.jpg" in str(listing.left_out[0])
    assert "1.jpg" in refused(tree("train/1.jpg"), label_pattern="cat|dog").received


@pytest.mark.parametrize("other", ["gru\u0308n", "gr\u00fcn ", "gr\u00fcn\u200b"])
def test_classes_that_look_the_same_are_refused(tree, refused, other):
    root = tree("gr\u00fcn/{}.png", f"{other}/{{}}.png", "red/{}.png")
    assert ascii(other) in refused(root).received


def test_letters_that_look_different_are_classes_of_their_own(tree, listed):
    assert listed(tree("m2/{}.png", "m\u00b2/{}.png")).classes == ["m2", "m\u00b2"]


LABELS = "image_id,label\na1.png,cat\na2.png,dog\na3.png,cat\n"


@pytest.fixture
def table(tree):
    """Write a folder with `img/a1.png` to `a3.png` and a table."""

    def make(text=LABELS, name="labels.csv"):
        root = tree("img/a{}.png")
        (root / name).write_text(text)
        return root

    return make


def test_files_and_classes_are_told_by_the_names_of_columns(table, listed, labelled):
    root = table()
    assert labelled(root) == {"img/a1.png": "cat", "img/a2.png": "dog", "img/a3.png": "cat"}
    assert listed(root).understood == (
        "labels.csv: files in the column 'image_id', classes in the column 'label'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "file,label\nA1.PNG,1\nimg/A2.png,2\na3.png,10\n",
        "id,breed,label\na1,x,1\na2,y,2\na3,z,10\n",
        "Filename;Class\nimg/a1.png;1\nimg/a2.png;2\nimg/a3.png;10\n",
        "path\ttarget\n/home/me/img/a1.png\t1\n/home/me/img/a2.png\t2\n/home/me/img/a3.png\t10\n",
        "\ufefffile, category \n a1.png , 1\n a2.png,2\na3.png,10\n",
        'file,class\r\n"a1.png","1"\r\n"a2.png","2"\r\n"a3.png","10"\r\n',
    ],
)
def test_extensions_folders_separators_and_spaces_may_be_as_they_are(table, listed, labelled, text):
    root = table(text)
    assert labelled(root) == {"img/a1.png": "1", "img/a2.png": "2", "img/a3.png": "10"}
    assert listed(root).classes == ["1", "2", "10"]


def test_columns_can_be_said(table, labelled, refused):
    root = table("image,label,grade\na1.png,x,1\na2.png,x,2\na3.png,x,1\n")
    assert labelled(root, label_column="grade")["img/a2.png"] == "2"
    error = refused(root, label_column="grades")
    assert "'image', 'label', 'grade'" in error.received


def test_splits_and_groups_are_columns_too(table, listed):
    root = table("file,label,split,patient\na1.png,x,train,p1\na2.png,y,train,p1\na3.png,x,val,p2\n")
    found = listed(root)
    assert found.given == {"train": (0, 2), "validation": (2, 3)}
    assert found.groups == ["p1", "p1", "p2"]


def test_masks_are_a_column_too(tree, paired):
    root = tree("scans/{}.png", "drawn/m{}.png")
    (root / "set.csv").write_text("image,mask\n1.png,m3.png\n2.png,drawn/m1.png\n3,m2\n")
    assert paired(root)[0] == ("scans/1.png", "drawn/m3.png")
    assert paired(root)[2] == ("scans/3.png", "drawn/m2.png")


def test_a_table_for_each_split_as_kaggle_has_them(tree, listed):
    root = tree("train_images/{}.jpg", "test_images/{}.jpg")
    (root / "train.csv").write_text("image_id,label\n1.jpg,0\n2.jpg,1\n3.jpg,1\n")
    (root / "sample_submission.csv").write_text("image_id,label\n1.jpg,4\n")
    listing = listed(root)
    assert listing.given == {"train": (0, 3)}
    assert {sample.image.parent.name for sample in listing.samples} == {"train_images"}
    assert "1 left out (beside the folders of samples): sample_submission.csv" in map(str, listing.left_out)


def test_metadata_in_the_folders_of_splits_as_hugging_face_has_them(tree, listed, labelled):
    root = tree("train/a{}.png", "test/b1.png")
    lines = [{"file_name": f"a{i}.png", "label": i % 2, "text": "x"} for i in (1, 2, 3)]
    (root / "train" / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (root / "test" / "metadata.csv").write_text("file_name,label\nb1.png,1\n")
    assert labelled(root)["train/a2.png"] == "0"
    assert listed(root).given == {"train": (0, 3), "test": (3, 4)}


def test_a_table_may_be_the_source(table, refused):
    root = table()
    (root / "old.csv").write_text(LABELS)
    assert "labels.csv and old.csv" in refused(root).received
    found = list_table(root / "old.csv", data_of(root / "old.csv"))
    assert len(found.samples) == 3
    (root / "list.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"the file .*list\.csv without them"):
        list_table(root / "list.csv", data_of(root / "list.csv"))


def test_images_in_no_row_are_left_out_and_told(table, tree, listed):
    root = table("file,label\na1.png,cat\na2.png,dog\n")
    tree("notes.txt")
    assert [str(each) for each in listed(root).left_out] == [
        "1 left out (in no row of the table): img/a3.png",
        "1 left out (beside the folders of samples): notes.txt",
    ]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a4.png,cat", "a4.png"),
        ("a1.png,dog", "cat and dog for"),
        ("a3.png,", "a3.png (without a value)"),
        (",cat", "a row without a file"),
        ("a3.png,dog,big", "3 cells in line 4, 2 columns"),
    ],
)
def test_rows_that_cannot_be_samples_are_named(table, refused, row, told):
    assert told in refused(table(f"file,label\na1.png,cat\na2.png,dog\n{row}\n")).received


@pytest.mark.parametrize(("encoding", "line"), [("latin-1", 3), ("utf-16", 1)])
def test_a_table_that_is_not_utf8_is_refused(tree, refused, encoding, line):
    root = tree("a1.png", "a2.png")
    (root / "labels.csv").write_text("file,label\na1.png,cat\na2.png,ros\xe9\n", encoding=encoding)
    assert f"{root / 'labels.csv'}, line {line}" in refused(root).received


def test_two_files_of_one_name_are_refused_where_nothing_tells_them_apart(table, tree, refused):
    root = table()
    tree("other/a1.png")
    assert "img/a1.png and" in refused(root).received


def test_a_table_beside_folders_of_classes_is_ambiguous_and_a_key_decides(tree, refused, labelled):
    root = tree("cat/{}.png", "dog/d{}.png")
    (root / "labels.csv").write_text("file,label\n1.png,old\nd1.png,young\n")
    assert 'layout = "table" or "classes"' in refused(root).action
    assert labelled(root, layout="table") == {"cat/1.png": "old", "dog/d1.png": "young"}
    assert labelled(root, layout="classes")["cat/1.png"] == "cat"


@pytest.mark.parametrize(
    ("splits", "told"),
    [(("val", "test", "val"), "validation and test in"), (("test",) * 3, "test in")],
)
def test_a_set_without_training_samples_is_refused(table, refused, splits, told):
    rows = "".join(f"a{number}.png,x,{split}\n" for number, split in enumerate(splits, 1))
    error = refused(table(f"file,label,split\n{rows}"))
    assert "training samples" in error.expected and error.received.startswith(told)


def test_masks_are_taken_where_their_column_is_said_and_classes_where_none_is(table, tree, listed):
    root = table("image,label,mask\na1.png,x,m1.png\na2.png,y,m2.png\na3.png,x,m3.png\n")
    tree("drawn/m{}.png")
    assert listed(root).kind == "classes"
    assert listed(root, mask_column="mask").kind == "masks"


def test_of_a_wide_table_only_columns_with_a_meaning_are_read(tmp_path):
    names = ["file", "label", *(f"c{number}" for number in range(100))]
    (tmp_path / "labels.csv").write_text(f"{','.join(names)}\n1.png,a{',1' * 100}\n")
    assert list(_read_table(tmp_path / "labels.csv", ["label", "file"])) == [{"label": "a", "file": "1.png"}]


def test_values_of_json_lines_are_named_as_they_are_written(tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"file": "1.png", "label": true}\n\n{"file": "2.png"}\n')
    rows = list(_read_table(tmp_path / "labels.jsonl", ["file", "label"]))
    assert [row["label"] for row in rows] == ["true", None]
