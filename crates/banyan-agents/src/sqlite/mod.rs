//! Databases of agents: opened so that nothing of the user's changes, and asked only for what they have.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use crate::{Problem, Stamp};

mod copy;

use copy::{Copy, beside};

/// So long an agent may hold its lock before we give up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where a database's header says whether it has a write-ahead log.
const READ_VERSION: usize = 19;
const WAL: u8 = 2;

/// A database that is only read.
pub(crate) struct Database {
    path: PathBuf,
    connection: Connection,
    /// What it is read from, if that is a copy.
    _copy: Option<Rc<Copy>>,
}

impl Database {
    /// Opens a database without changing it or leaving files beside it.
    ///
    /// A database with a write-ahead log is a matter of three files. Even a reader makes the third one if it is not there, so:
    /// without a log to look at nobody has it open, and it is read as a file that does not change. With a log and its index an
    /// agent has it open, and we join. With a log alone (a crash, or a copy) it is read from a copy, and so is one whose last
    /// change was cut off and would have to be taken back first.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let is_there = |end: &str| beside(path, end).metadata().is_ok_and(|file| file.len() > 0);
        if !has_wal(path)? {
            let database = Self::connect(path, path, "mode=ro", None)?;
            let is_cut_off = is_there("-journal") && database.is_cut_off();
            return if is_cut_off { Self::open_copy(path, "-journal") } else { Ok(database) };
        }
        if !is_there("-wal") {
            return Self::connect(path, path, "mode=ro&immutable=1", None);
        }
        if beside(path, "-shm").exists() {
            return Self::connect(path, path, "mode=ro", None);
        }
        Self::open_copy(path, "-wal")
    }

    /// Opens a copy of a database and of the file beside it.
    fn open_copy(path: &Path, end: &str) -> Result<Self, Problem> {
        let copy = Copy::of(path, end).map_err(|error| Problem::io(path, error))?;
        let file = copy.file();
        Self::connect(path, &file, "mode=rw", Some(copy))
    }

    /// Whether it says that it cannot be read without being changed.
    fn is_cut_off(&self) -> bool {
        let answer =
            self.connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
        answer.is_err_and(|error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly))
    }

    fn connect(path: &Path, file: &Path, how: &str, copy: Option<Rc<Copy>>) -> Result<Self, Problem> {
        let flags =
            if how == "mode=rw" { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
        let flags = flags | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(format!("file:{}?{how}", in_uri(file)), flags);
        let connection = connection.map_err(|error| problem(path, &error))?;
        connection.busy_timeout(PATIENCE).map_err(|error| problem(path, &error))?;
        Ok(Self { path: path.to_owned(), connection, _copy: copy })
    }

    /// A table's columns; none if there is no such table.
    pub(crate) fn table(&self, name: &str) -> Result<Table, Problem> {
        Table::of(&self.connection, name).map_err(|error| self.problem(&error))
    }

    /// Gives every row of a question to `take`, as objects by column. A row that cannot be read ends it, with its reason.
    pub(crate) fn each<E: From<Problem>>(
        &self,
        sql: &str,
        with: &[&dyn rusqlite::ToSql],
        mut take: impl FnMut(HashMap<String, Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |error| E::from(self.problem(&error));
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(with).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            take(object(row, &names).map_err(failed)?)?;
        }
        Ok(())
    }

    /// All rows of a question that has few.
    pub(crate) fn all(
        &self,
        sql: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<HashMap<String, Value>>, Problem> {
        let mut all = Vec::new();
        self.each::<Problem>(sql, with, |row| {
            all.push(row);
            Ok(())
        })?;
        Ok(all)
    }

    fn problem(&self, error: &rusqlite::Error) -> Problem {
        problem(&self.path, error)
    }
}

/// What a table has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    name: String,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    /// Whether a row must say what it is.
    needed: bool,
}

impl Table {
    /// A table's columns.
    pub(crate) fn of(connection: &Connection, name: &str) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare("SELECT name, \"notnull\" AND dflt_value IS NULL FROM pragma_table_info(?1)")?;
        let columns = statement
            .query_map([name], |row| Ok(Column { name: row.get(0)?, needed: row.get(1)? }))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { name: name.to_owned(), columns })
    }

    /// Whether there is such a table.
    pub(crate) fn exists(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Whether it has a column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|known| known.name == column)
    }

    /// What to write after SELECT to get columns, with null for those that are not there.
    pub(crate) fn select(&self, columns: &[&str]) -> String {
        let one = |column: &&str| {
            if self.has(column) { format!("\"{column}\"") } else { format!("NULL AS \"{column}\"") }
        };
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Inserts a row. Values for columns that are not there are left out.
    pub(crate) fn insert(&self, connection: &Connection, row: &[(&str, Value)]) -> rusqlite::Result<()> {
        let row: Vec<_> = row.iter().filter(|(column, _)| self.has(column)).collect();
        let names: Vec<String> = row.iter().map(|(column, _)| format!("\"{column}\"")).collect();
        let places: Vec<String> = (1..=row.len()).map(|place| format!("?{place}")).collect();
        let sql = format!("INSERT INTO \"{}\" ({}) VALUES ({})", self.name, names.join(", "), places.join(", "));
        let values = row.iter().map(|(_, value)| stored(value));
        connection.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values)).map(drop)
    }

    /// Whether rows with these columns can be inserted: all of `must` are there, and nothing else is needed.
    pub(crate) fn takes(&self, must: &[&str]) -> bool {
        self.exists()
            && must.iter().all(|column| self.has(column))
            && self.columns.iter().all(|column| !column.needed || must.contains(&column.name.as_str()))
    }
}

/// Opens an agent's own database to add to it. It must be there.
pub(crate) fn open_to_add(path: &Path) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| problem(path, &error))?;
    connection.busy_timeout(PATIENCE).map_err(|error| problem(path, &error))?;
    Ok(connection)
}

/// What a database says is wrong. A lock is nothing wrong with it: it can be read later.
pub(crate) fn problem(path: &Path, error: &rusqlite::Error) -> Problem {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    if matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked)) {
        return Problem::io(
            path,
            std::io::Error::new(ErrorKind::WouldBlock, "somebody else has locked the database"),
        );
    }
    Problem::form(path, format!("the database says: {error}"))
}

/// Whether a file begins as a database does.
pub(crate) fn is_database(beginning: &[u8]) -> bool {
    beginning.starts_with(b"SQLite format 3\0")
}

/// The stamp of something in a database.
pub(crate) fn stamp(size: &Value, changed: i64) -> Stamp {
    Stamp { size: size.as_u64().unwrap_or_default(), changed }
}

fn has_wal(path: &Path) -> Result<bool, Problem> {
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    read.map_err(|error| Problem::io(path, error))?;
    if !header.is_empty() && !is_database(&header) {
        return Err(Problem::form(path, "it is not a database"));
    }
    Ok(header.get(READ_VERSION) == Some(&WAL))
}

/// A path as it stands in a `file:` address.
fn in_uri(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn object(row: &Row<'_>, names: &[String]) -> rusqlite::Result<HashMap<String, Value>> {
    let mut object = HashMap::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        object.insert(name.clone(), value(row.get_ref(place)?));
    }
    Ok(object)
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
    }
}

fn stored(value: &Value) -> rusqlite::types::Value {
    use rusqlite::types::Value as Stored;
    match value {
        Value::Null => Stored::Null,
        Value::Bool(yes) => Stored::Integer((*yes).into()),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Stored::Integer(number),
            None => Stored::Real(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Stored::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Stored::Text(value.to_string()),
    }
}
