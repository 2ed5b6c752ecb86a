"""The values of the result column ``operation`` for each statement; programs rely on them."""

from __future__ import annotations

from shelduck.sql.statements import macro_statements as ms
from shelduck.sql.statements import row_statements as rows
from shelduck.sql.statements import statements as st
from shelduck.sql.statements import upkeep_statements as up
from shelduck.sql.tokens.parts import Call, Query

OPERATIONS: dict[type, str] = {
    st.CreateSchema: "CREATE SCHEMA",
    st.DropSchema: "DROP SCHEMA",
    st.UseSchema: "USE SCHEMA",
    st.CreateTable: "CREATE TABLE",
    st.DropTable: "DROP TABLE",
    st.AlterTable: "ALTER TABLE",
    st.RenameTable: "RENAME TABLE",
    st.AlterRollups: "ALTER ROLLUPS",
    st.CreateView: "CREATE VIEW",
    st.PinView: "CREATE VIEW",
    st.AlterView: "ALTER VIEW",
    st.RenameView: "RENAME VIEW",
    st.CommentView: "COMMENT ON VIEW",
    st.DropView: "DROP VIEW",
    ms.CreateMacro: "CREATE MACRO",
    ms.DropMacro: "DROP MACRO",
    rows.Insert: "INSERT",
    rows.Delete: "DELETE",
    rows.Truncate: "TRUNCATE",
    rows.Update: "UPDATE",
    rows.Merge: "MERGE",
    rows.UpdateFrom: "UPDATE",
    rows.DeleteUsing: "DELETE",
    rows.Returning: "RETURNING",
    Query: "QUERY",
    st.Explain: "EXPLAIN",
    st.ShowSchemas: "SHOW SCHEMAS",
    st.ShowTables: "SHOW TABLES",
    st.ShowColumns: "SHOW COLUMNS",
    st.ShowCreateTable: "SHOW CREATE TABLE",
    st.ShowProperties: "SHOW PROPERTIES",
    st.ShowViews: "SHOW VIEWS",
    ms.ShowMacros: "SHOW MACROS",
    st.ShowPartitions: "SHOW PARTITIONS",
    st.Describe: "DESCRIBE",
    st.Help: "HELP",
    up.DescribeHistory: "DESCRIBE HISTORY",
    Call: "CALL",
    up.DropFeature: "DROP FEATURE",
    up.SetVariable: "SET VARIABLE",
    up.Optimize: "OPTIMIZE",
    up.Vacuum: "VACUUM",
    up.Checkpoint: "CHECKPOINT",
    up.Restore: "RESTORE",
    up.ShowJobs: "SHOW JOBS",
    up.CancelJob: "CANCEL JOB",
    up.BeginTransaction: "BEGIN TRANSACTION",
    up.CommitTransaction: "COMMIT TRANSACTION",
    up.RollbackTransaction: "ROLLBACK TRANSACTION",
}
