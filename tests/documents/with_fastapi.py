"""A FastAPI application with the usual kinds of parameters and bodies; prints its OpenAPI document."""

import json
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Literal
from uuid import UUID

from fastapi import FastAPI, File, Form, Header, Query, UploadFile
from pydantic import BaseModel, Field

app = FastAPI(title="Library", version="1.0.0", servers=[{"url": "https://library.example/api/v1"}])


class Genre(str, Enum):
    novel = "novel"
    poetry = "poetry"


class Author(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    born: date | None = None


class Print(BaseModel):
    kind: Literal["print"]
    pages: int = Field(gt=0)


class Audio(BaseModel):
    kind: Literal["audio"]
    seconds: float


class NewBook(BaseModel):
    title: str
    authors: list[Author] = []
    genre: Genre = Genre.novel
    edition: Print | Audio = Field(discriminator="kind")
    tags: dict[str, str] = {}
    isbn: str | None = Field(default=None, max_length=20)


class Book(NewBook):
    id: int
    added: datetime
    related: list["Book"] = []


class Filter(BaseModel):
    since: date | None = None
    genres: list[Genre] = []


@app.get("/books")
def list_books(
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: int = 0,
    title: str | None = None,
    tag: Annotated[list[str] | None, Query()] = None,
    x_request_source: Annotated[str | None, Header()] = None,
) -> list[Book]: ...


@app.post("/books", status_code=201)
def add_book(book: NewBook) -> Book: ...


@app.get("/books/{book_id}")
def get_book(book_id: int) -> Book: ...


@app.put("/books/{book_id}")
def replace_book(book_id: int, book: NewBook) -> Book: ...


@app.patch("/books/{book_id}")
def change_book(book_id: int, changes: dict[str, str | int | None]) -> Book: ...


@app.delete("/books/{book_id}", status_code=204)
def delete_book(book_id: int) -> None: ...


@app.post("/books/{book_id}/cover")
async def upload_cover(book_id: int, cover: UploadFile, caption: Annotated[str, Form()] = "") -> dict[str, int]: ...


@app.post("/books/{book_id}/pages")
async def upload_pages(book_id: int, pages: Annotated[list[bytes], File()]) -> dict[str, int]: ...


@app.post("/login")
def log_in(username: Annotated[str, Form()], password: Annotated[str, Form()]) -> dict[str, str]: ...


@app.post("/search")
def search(filter: Filter, words: list[str]) -> list[Book]: ...


@app.post("/tags")
def set_tags(tags: list[str]) -> list[str]: ...


@app.get("/loans/{loan_id}/days/{day}")
def get_loan(loan_id: UUID, day: date) -> dict[str, bool]: ...


@app.get("/filtered")
def filtered(filter: Annotated[Filter, Query()]) -> int: ...


print(json.dumps(app.openapi(), indent=1))
