//! SQLite in memory, and the words in which Python's `sqlite3` module tells what went wrong.
//!
//! Laws: values reach SQLite as bound parameters only; a query is cut off after a bounded number of steps,
//! and its answer is of bounded size; no query reaches the disk, or leaves a transaction open for the next.
//!
//! Used by `cli` and `sample`.

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement};

use crate::exceptions::Raised;
use crate::value::{Dict, Value};

/// 64 MiB at most, and temporary tables in memory too.
const LIMITS: &str = "PRAGMA max_page_count = 16384; PRAGMA temp_store = MEMORY;";

/// What every new database holds; the examples of the documentation query it.
const SEED: &str = "
    CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
    INSERT INTO users VALUES (1, 'O''Brien', 30), (2, NULL, NULL);
";

/// Longest SQL text, and longest text or blob: as much as a request may carry.
const MAX_BYTES: i32 = 5 * 1024 * 1024;

/// How large all rows of an answer may be together, with their names.
const MAX_RESULT: usize = 8 * 1024 * 1024;

/// What a value costs beyond its bytes.
const VALUE_OVERHEAD: usize = 32;

/// SQLite's virtual machine asks after so many instructions whether to go on.
const INSTRUCTIONS_PER_LEAP: i32 = 10_000;

/// How often it may ask: 20 million instructions are well under a second.
const MAX_LEAPS: usize = 2_000;

/// The tables of one sample server.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
}

/// What a statement did.
#[derive(Debug)]
pub(super) struct Executed {
    /// One dict a row.
    pub(super) rows: Vec<Value>,
    /// As `cursor.rowcount`: -1 unless the statement begins with a word that changes rows.
    pub(super) rows_affected: i64,
    pub(super) last_row_id: i64,
}

impl Database {
    /// Opens an empty database in memory and fills in the table `users`.
    ///
    /// # Errors
    ///
    /// When SQLite cannot open it, which only want of memory explains.
    pub fn seeded() -> Result<Self, rusqlite::Error> {
        // The flag, unlike the name alone, is inherited by `ATTACH` and `VACUUM INTO`: those stay in memory too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_MEMORY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(":memory:", flags)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_BYTES)?;
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_BYTES)?;
        connection.execute_batch(LIMITS)?;
        connection.execute_batch(SEED)?;
        Ok(Database { connection })
    }

    /// Runs one statement, all of it or nothing.
    pub(super) fn run(&mut self, sql: &str, parameters: &[&Value]) -> Result<Executed, Raised> {
        let mut leaps = 0;
        let out_of_patience = move || {
            leaps += 1;
            leaps > MAX_LEAPS
        };
        self.connection
            .progress_handler(INSTRUCTIONS_PER_LEAP, Some(out_of_patience))?;
        let executed = self.execute(sql, parameters);
        // The server in Python opens a connection for each call, and commits or rolls back at its end.
        if !self.connection.is_autocommit() {
            let end = if executed.is_ok() {
                "COMMIT"
            } else {
                "ROLLBACK"
            };
            self.connection.execute_batch(end)?;
        }
        executed
    }

    fn execute(&self, sql: &str, parameters: &[&Value]) -> Result<Executed, Raised> {
        let mut statement = self.connection.prepare(sql)?;
        if statement.parameter_count() != parameters.len() {
            return Err(Raised::Other(format!(
                "Incorrect number of bindings supplied. The current statement uses {}, and there are {} supplied.",
                statement.parameter_count(),
                parameters.len()
            )));
        }
        for (index, value) in parameters.iter().enumerate() {
            bind(&mut statement, index + 1, value)?;
        }
        let rows = collect(&mut statement)?;
        let rows_affected = if changes_rows(sql) {
            i64::try_from(self.connection.changes()).unwrap_or(i64::MAX)
        } else {
            -1
        };
        Ok(Executed {
            rows,
            rows_affected,
            last_row_id: self.connection.last_insert_rowid(),
        })
    }

    /// A version-4 UUID. SQLite is the one source of randomness here.
    pub(super) fn random_uuid(&self) -> Result<String, rusqlite::Error> {
        let random: [u8; 16] = self
            .connection
            .query_row("SELECT randomblob(16)", [], |row| row.get(0))?;
        let bits = u128::from_be_bytes(random) & !(0xf << 76) & !(0x3 << 62);
        let hex = format!("{:032x}", bits | (0x4 << 76) | (0x2 << 62));
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        Ok(parts.join("-"))
    }
}

fn bind(statement: &mut Statement<'_>, index: usize, value: &Value) -> Result<(), Raised> {
    match value {
        Value::None => statement.raw_bind_parameter(index, rusqlite::types::Null)?,
        Value::Bool(truth) => statement.raw_bind_parameter(index, truth)?,
        Value::Int(number) => statement.raw_bind_parameter(index, number)?,
        Value::Float(number) => statement.raw_bind_parameter(index, number)?,
        Value::Text(text) => statement.raw_bind_parameter(index, text)?,
        Value::Bytes(bytes) => statement.raw_bind_parameter(index, bytes)?,
        Value::Big(_) => {
            let text = "Python int too large to convert to SQLite INTEGER";
            return Err(Raised::Other(text.to_owned()));
        }
        Value::List(_) | Value::Dict(_) => {
            return Err(Raised::Other(format!(
                "Error binding parameter {index}: type '{}' is not supported",
                value.type_name()
            )));
        }
    }
    Ok(())
}

/// Steps through all rows; a statement without rows does its work here too.
fn collect(statement: &mut Statement<'_>) -> Result<Vec<Value>, Raised> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    // A dict has each name once: the first column of that name counts.
    let columns: Vec<(usize, &String)> = names
        .iter()
        .enumerate()
        .filter(|(index, name)| !names[..*index].contains(name))
        .collect();
    let mut found = Vec::new();
    let mut size = 0;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut members = Vec::with_capacity(columns.len());
        for &(index, name) in &columns {
            let stored = row.get_ref(index)?;
            size += name.len() + bytes_of(stored) + VALUE_OVERHEAD;
            if size > MAX_RESULT {
                return Err(Raised::Other("result too large".to_owned()));
            }
            members.push((name.clone(), read(stored, name)?));
        }
        found.push(Value::Dict(Dict::new(members)));
    }
    Ok(found)
}

const fn bytes_of(stored: ValueRef<'_>) -> usize {
    match stored {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
    }
}

fn read(stored: ValueRef<'_>, column: &str) -> Result<Value, Raised> {
    Ok(match stored {
        ValueRef::Null => Value::None,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Float(number),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Value::from(text),
            Err(_) => {
                let text = String::from_utf8_lossy(bytes);
                return Err(Raised::Other(format!(
                    "Could not decode to UTF-8 column '{column}' with text '{text}'"
                )));
            }
        },
    })
}

fn changes_rows(sql: &str) -> bool {
    let first: String = sql
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    ["INSERT", "UPDATE", "DELETE", "REPLACE"].contains(&first.to_ascii_uppercase().as_str())
}

impl From<rusqlite::Error> for Raised {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{MultipleStatement, SqlInputError, SqliteFailure};
        let text =
            if let SqliteFailure(_, Some(message)) | SqlInputError { msg: message, .. } = error {
                message
            } else if matches!(error, MultipleStatement) {
                "You can only execute one statement at a time.".to_owned()
            } else {
                error.to_string()
            };
        Raised::Other(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repr::repr;

    fn run(sql: &str) -> Result<Executed, Raised> {
        Database::seeded().unwrap().run(sql, &[])
    }

    fn refusal(sql: &str) -> String {
        run(sql).unwrap_err().text().to_owned()
    }

    #[test]
    fn a_row_keeps_every_type_of_sqlite() {
        let executed =
            run("SELECT 1 a, 1.0 b, 1e400 c, x'00ff' d, NULL e, 'O''Brien' f, 2 a").unwrap();
        assert_eq!(
            repr(&executed.rows[0]),
            r#"{'a': 1, 'b': 1.0, 'c': inf, 'd': b'\x00\xff', 'e': None, 'f': "O'Brien"}"#
        );
    }

    #[test]
    fn a_fault_is_told_in_the_words_of_python() {
        let table = [
            ("SELECT * FROM nosuch", "no such table: nosuch"),
            ("SELECT", "incomplete input"),
            ("SELECT * FROM users OFFSET 1", "near \"1\": syntax error"),
            (
                "SELECT 1; SELECT 2",
                "You can only execute one statement at a time.",
            ),
            (
                "INSERT INTO users (id) VALUES (1)",
                "UNIQUE constraint failed: users.id",
            ),
            (
                "SELECT ?",
                "Incorrect number of bindings supplied. The current statement uses 1, and there are 0 supplied.",
            ),
            (
                "SELECT CAST(x'ff' AS TEXT) t",
                "Could not decode to UTF-8 column 't' with text '\u{fffd}'",
            ),
        ];
        for (sql, text) in table {
            assert_eq!(refusal(sql), text, "{sql}");
        }
    }

    #[test]
    fn what_sqlite_cannot_store_is_not_bound() {
        let mut database = Database::seeded().unwrap();
        let mut bind = |value: Value| {
            let raised = database.run("SELECT ?", &[&value]).unwrap_err();
            raised.text().to_owned()
        };
        assert_eq!(
            bind(Value::List(vec![])),
            "Error binding parameter 1: type 'list' is not supported"
        );
        assert_eq!(
            bind(Value::Big("9".repeat(30))),
            "Python int too large to convert to SQLite INTEGER"
        );
    }

    #[test]
    fn only_a_word_that_changes_rows_counts_them() {
        assert_eq!(run(" update users set age = 1").unwrap().rows_affected, 2);
        assert_eq!(run("CREATE TABLE t (a)").unwrap().rows_affected, -1);
    }

    #[test]
    fn a_query_without_end_is_interrupted() {
        let forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
        assert_eq!(
            refusal(&format!("{forever} SELECT max(i) FROM n")),
            "interrupted"
        );
        assert_eq!(
            refusal(&format!("{forever} SELECT i FROM n")),
            "result too large"
        );
        assert_eq!(
            refusal("SELECT zeroblob(100000000)"),
            "string or blob too big"
        );
        let fill = format!("CREATE TABLE t AS {forever} SELECT zeroblob(1000000) FROM n");
        assert_eq!(refusal(&fill), "database or disk is full");
        let ends = ";".repeat(1_000_000);
        assert!(run(&format!("SELECT 1{ends}")).is_ok());
    }

    #[test]
    fn no_transaction_outlives_its_call() {
        let mut database = Database::seeded().unwrap();
        database.run("BEGIN", &[]).unwrap();
        database.run("DELETE FROM users", &[]).unwrap();
        let text = database.run("ROLLBACK", &[]).unwrap_err();
        assert_eq!(text.text(), "cannot rollback - no transaction is active");
    }

    #[test]
    fn nothing_is_written_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stolen.db");
        let mut database = Database::seeded().unwrap();
        for sql in [
            format!("ATTACH '{}' AS other", file.display()),
            "CREATE TABLE other.t AS SELECT * FROM users".to_owned(),
            format!("VACUUM INTO '{}'", file.display()),
        ] {
            // Whether SQLite refuses it or does it in memory: the folder stays empty.
            let _ = database.run(&sql, &[]);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_random_uuid_is_of_version_four() {
        let database = Database::seeded().unwrap();
        let uuid = database.random_uuid().unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!("89ab".contains(&uuid[19..20]));
        assert_ne!(uuid, database.random_uuid().unwrap());
    }
}
