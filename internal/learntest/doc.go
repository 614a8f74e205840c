// SPDX-License-Identifier: Apache-2.0

// Package learntest owns the promise of docs/learn and docs/migration.md: every command that a chapter shows is
// run, and prints what the chapter shows.
//
// A chapter is Markdown. Its blocks ```console are commands with their output, typed one after the other into one
// terminal; ```console NAME is another terminal, in which a command goes on running while the reader is elsewhere:
// a later block of the same name shows what has appeared there since, and ^C ends the command. Other blocks show a
// file: their first line is a comment with its path. A block ```text is neither.
//
// In what a chapter shows, … stands for any text within a line, and alone on a line for any number of lines. Times
// of day, durations with seconds, addresses, numbers of events and runs of spaces need not agree (see Mask). A
// command that only looks is repeated until it shows what it should; nothing else is repeated, and nothing is
// measured by the clock.
package learntest
