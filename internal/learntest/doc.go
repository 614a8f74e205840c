// SPDX-License-Identifier: Apache-2.0

// Package learntest owns the test of docs/learn, docs/tasks and docs/migration.md: it runs every command of a chapter
// and compares its output with the output in the chapter. Pages that build controllers of other projects
// (make component) are run under the build tag ecosystem alone.
//
// A chapter is Markdown. Its blocks ```console are commands with their output, typed one after the other into one
// terminal. ```console NAME is another terminal, in which a command continues to run: a later block of the same name
// shows its output since then, and ^C ends the command. Other blocks show a file: their first line is a comment with
// its path. A block ```text is neither.
//
// In the output of a chapter, … matches any text within a line, and alone on a line any number of lines. Times of
// day, durations with seconds, addresses, numbers of events and runs of spaces need not agree (see Mask). A command
// that only reads is repeated until its output matches; no other command is repeated, and no time is measured.
package learntest
