// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is one error in a configuration.
type Problem struct {
	// Line is its line in the file, from 1; 0 if it is not in the file.
	Line int
	// Column is its column in the line, from 1; 0 if it is not known.
	Column int
	// Path is the field, such as profiles[0].plugins.score.enabled[1].name.
	Path    string
	Message string
}

// String returns line, path and message, as far as known.
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Line > 0 && p.Column > 0:
		fmt.Fprintf(&b, "line %d, column %d: ", p.Line, p.Column)
	case p.Line > 0:
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is all problems of a configuration.
type Error struct {
	File     string // empty if the text is from elsewhere
	Problems []Problem
}

// Error returns one problem per line.
func (e *Error) Error() string {
	name := "configuration"
	if e.File != "" {
		name = e.File
	}
	if len(e.Problems) == 1 {
		return name + ": " + e.Problems[0].String()
	}
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = "  " + p.String()
	}
	return fmt.Sprintf("%s: %d problems\n%s", name, len(e.Problems), strings.Join(lines, "\n"))
}

// report collects problems and warnings while a file is read.
type report struct {
	catalog  Catalog
	source   source
	problems []Problem
	warnings []string
}

func (r *report) add(path, format string, args ...any) {
	r.problems = append(r.problems, r.problem(path, format, args...))
}

func (r *report) problem(path, format string, args ...any) Problem {
	return Problem{Line: r.source.line(path), Path: path, Message: fmt.Sprintf(format, args...)}
}

// addAt adds a problem with its column.
func (r *report) addAt(path, message string) {
	line, column := r.source.position(path)
	r.problems = append(r.problems, Problem{Line: line, Column: column, Path: path, Message: message})
}

// warn records a setting that is valid but may not be intended.
func (r *report) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(path, format, args...).String())
}

// field adds the errors of a validator of apimachinery.
func (r *report) field(err error) {
	if err == nil {
		return
	}
	if agg, ok := err.(utilerrors.Aggregate); ok {
		for _, e := range agg.Errors() {
			r.field(e)
		}
		return
	}
	if fe, ok := err.(*field.Error); ok {
		r.add(fe.Field, "%s", fe.ErrorBody())
		return
	}
	r.add("", "%v", err)
}

// err returns nil if there is no problem.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &Error{Problems: r.problems}
}
