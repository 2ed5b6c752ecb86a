"""Table properties: what may be set, and what they allow."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.properties import (
    SetProperties,
    UnsetProperties,
    allows_promotion,
    apply_properties,
    checked_properties,
    shown_properties,
    widens_by_itself,
    without_type_widening,
)
from shelduck.model.tables.schema import Schema
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.promotions import promotion

ON = {"delta.enableTypeWidening": "true"}
OFF = {"delta.enableTypeWidening": "false"}
NONE = Schema(())
ENABLED = {**ON, "delta.feature.typeWidening": "supported"}


def test_enabling_type_widening_records_the_feature():
    assert checked_properties({"Delta.EnableTypeWidening": "TRUE"}, "t") == ENABLED
    assert checked_properties(OFF, "t") == OFF


def test_other_names_are_the_users_own_and_keep_their_case():
    assert checked_properties({"Owner": "me"}, "t") == {"Owner": "me"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("enableTypeWidening", "delta.enableTypeWidening"),
        ("enableTypeWidenin", "delta.enableTypeWidening"),
        ("dleta.enableTypeWidening", "delta.enableTypeWidening"),
        ("delta_enableTypeWidening", "delta.enableTypeWidening"),
        ("delta.enableTypeWidenin", "delta.enableTypeWidening"),
        ("allowAutomaticWidening", "shelduck.allowAutomaticWidening"),
        ("sheldduck.allowAutomaticWidening", "shelduck.allowAutomaticWidening"),
        ("feature.typeWidening", "delta.feature.typeWidening"),
    ],
)
def test_a_name_that_is_all_but_a_known_one_would_have_no_effect_and_is_refused(given, meant):
    with pytest.raises(NotFound, match=f"property '{given}' does not exist in t; did you mean.*"):
        checked_properties({given: "true"}, "t")
    with pytest.raises(NotFound, match=f"'{meant}'"):
        checked_properties({given: "true"}, "t")


@pytest.mark.parametrize(
    "own", ["type", "widening", "owner", "write.format.default", "feature", "deltas", "automatic"]
)
def test_other_names_are_free(own):
    assert checked_properties({own: "x"}, "t") == {own: "x"}


@pytest.mark.parametrize(
    ("values", "error", "told"),
    [
        ({"delta.enableTypeWidenin": "true"}, NotFound, "did you mean 'delta.enableTypeWidening'"),
        ({"shelduck.nope": "1"}, NotFound, "property 'shelduck.nope' does not exist in main.t"),
        (
            {"delta.enableTypeWidening": "yes"},
            InvalidRequest,
            "property delta.enableTypeWidening of main.t cannot be 'yes'; use true or false",
        ),
        ({"comment": "x"}, InvalidRequest, "COMMENT ON TABLE main.t IS"),
        (
            {"target_file_size": "1MB"},
            InvalidRequest,
            "CALL set_option('target_file_size', '1MB', table_name => 'main.t')",
        ),
        ({"shelduck.typeChangesForgottenAt": "1"}, NotFound, "does not exist"),
    ],
)
def test_what_a_property_does_not_take_is_refused(values, error, told):
    with pytest.raises(error) as refused:
        checked_properties(values, "main.t")

    assert told in str(refused.value)


def test_properties_are_set_and_unset_one_by_one():
    known = {"owner": "me", **ENABLED}
    after = apply_properties(known, SetProperties((("owner", "you"), ("team", "x"))), NONE, "t")

    assert after == {"owner": "you", "team": "x", **ENABLED}
    assert apply_properties(after, UnsetProperties(("OWNER", "team")), NONE, "t") == ENABLED
    assert apply_properties(after, UnsetProperties(("nope",), if_exists=True), NONE, "t") == after
    with pytest.raises(NotFound, match="property 'onwer' does not exist in t; did you mean"):
        apply_properties(known, UnsetProperties(("onwer",)), NONE, "t")
    with pytest.raises(InvalidRequest, match="ALTER TABLE t DROP FEATURE typeWidening"):
        apply_properties(known, UnsetProperties(("delta.feature.typeWidening",)), NONE, "t")


@pytest.mark.parametrize(
    ("properties", "source", "target", "allowed"),
    [
        ({}, "int32", "int64", True),
        ({}, "float32", "float64", True),
        ({}, "int32", "float64", False),
        ({}, "decimal(9,2)", "decimal(18,2)", False),
        (ON, "int32", "float64", True),
        (ON, "date", "timestamp", True),
        (OFF, "int32", "int64", False),
        (OFF, "int32", "int32", True),
    ],
)
def test_which_light_changes_are_allowed(properties, source, target, allowed):
    found = promotion(ducklake_type(source), ducklake_type(target))

    assert found.is_light
    assert allows_promotion(properties, found) is allowed


@pytest.mark.parametrize(
    ("mode", "source", "target", "widens"),
    [
        (None, "int32", "float64", True),
        ("always", "int32", "decimal(12,2)", True),
        ("same_family", "int32", "int64", True),
        ("same_family_type", "float32", "float64", True),
        ("same_family", "decimal(9,2)", "decimal(18,4)", True),
        ("same_family", "date", "timestamp", True),
        ("same_family", "int32", "float64", False),
        ("same_family", "int32", "decimal(12,2)", False),
        ("never", "int32", "int64", False),
        ("always", "int64", "int32", False),
        ("always", "int64", "varchar", False),
    ],
)
def test_what_a_write_widens_by_itself(mode, source, target, widens):
    given = {} if mode is None else {"shelduck.allowAutomaticWidening": mode}
    properties = checked_properties(ON | given, "t")

    assert widens_by_itself(properties, ducklake_type(source), ducklake_type(target)) is widens


def test_a_write_widens_only_what_the_table_allows():
    assert not widens_by_itself({}, ducklake_type("int32"), ducklake_type("float64"))
    assert widens_by_itself({}, ducklake_type("int32"), ducklake_type("int64"))


def test_leaving_type_widening_keeps_the_rest_and_hides_where_history_begins():
    after = without_type_widening({"owner": "me", **ENABLED}, 7)

    assert shown_properties(after, NONE) == {"owner": "me"}
    assert after == {"owner": "me", "shelduck.typeChangesForgottenAt": "7"}
