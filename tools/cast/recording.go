// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// recording is commands with their output.
type recording struct {
	title string
	steps []step
}

// The pace of a recording, in seconds.
const (
	perKey    = 0.04
	perLine   = 0.05 // between two lines of output
	afterType = 0.4
	afterStep = 2.5
	atTheEnd  = 6.0
)

// size returns the columns and rows that the recording needs.
func (r recording) size() (columns, rows int) {
	columns = 80
	for _, s := range r.steps {
		for _, l := range append(strings.Split(strings.TrimRight(s.output, "\n"), "\n"), "$ "+s.command) {
			columns = max(columns, utf8.RuneCountInString(l))
			rows++
		}
		rows++ // an empty line between two commands
	}
	return columns, rows
}

// cast returns the recording in version 2 of the format of asciinema.
func (r recording) cast() []byte {
	columns, rows := r.size()
	var b bytes.Buffer
	write := func(v any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			panic(err) // strings and numbers
		}
	}
	write(struct {
		Version int    `json:"version"`
		Width   int    `json:"width"`
		Height  int    `json:"height"`
		Title   string `json:"title,omitempty"`
	}{2, columns, rows, r.title})
	now := 0.5
	out := func(text string) {
		write([]any{json.Number(fmt.Sprintf("%.2f", now)), "o", text})
	}
	for _, s := range r.steps {
		out("$ ")
		for _, key := range s.command {
			now += perKey
			out(string(key))
		}
		now += afterType
		out("\r\n")
		for _, l := range strings.SplitAfter(s.output, "\n") {
			if l != "" {
				now += perLine
				out(strings.ReplaceAll(l, "\n", "\r\n"))
			}
		}
		now += afterStep
		out("\r\n")
	}
	return b.Bytes()
}

const (
	charWidth  = 8.43
	lineHeight = 19
	margin     = 16
	bar        = 34
)

const style = `<style>
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dde3; white-space: pre }
.typed { fill: #8fd18f; font-weight: 600 }
`

// svg returns the recording as an animated image. Where animations are not shown, it shows everything.
func (r recording) svg() []byte {
	columns, rows := r.size()
	width, height := int(float64(columns)*charWidth)+2*margin, rows*lineHeight+2*margin+bar
	type row struct {
		text    string
		command bool
		at      float64
	}
	var all []row
	now := 0.5
	for _, s := range r.steps {
		all = append(all, row{"$ " + s.command, true, now})
		now += float64(utf8.RuneCountInString(s.command))*perKey + afterType
		for _, l := range strings.Split(strings.TrimRight(s.output, "\n"), "\n") {
			now += perLine
			all = append(all, row{l, false, now})
		}
		now += afterStep
		all = append(all, row{"", false, now})
	}
	total := now + atTheEnd
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=%q viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" ",
		"http://www.w3.org/2000/svg", width, height, width, height)
	fmt.Fprintf(&b, "aria-label=\"%s\">\n%s", html.EscapeString(r.title), style)
	// It begins at its end, so that a still image of it has all lines.
	b.WriteString("@media (prefers-reduced-motion: no-preference) ")
	fmt.Fprintf(&b, "{ text { animation: %.1fs step-end -%.1fs infinite } }\n", total, now)
	for i, l := range all {
		if l.text != "" {
			fmt.Fprintf(&b, "@keyframes l%d { 0%% { opacity: 0 } %.2f%% { opacity: 1 } }\n", i, 100*l.at/total)
			fmt.Fprintf(&b, "#l%d { animation-name: l%d }\n", i, i)
		}
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#171c21\"/>\n")
	for i, colour := range []string{"#e0685f", "#e3b341", "#62b566"} {
		fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"18\" r=\"6\" fill=\"%s\"/>\n", margin+6+i*20, colour)
	}
	for i, l := range all {
		if l.text == "" {
			continue
		}
		class := ""
		if l.command {
			class = ` class="typed"`
		}
		fmt.Fprintf(&b, "<text id=\"l%d\" x=\"%d\" y=\"%d\" textLength=\"%.0f\"%s>%s</text>\n",
			i, margin, bar+margin+i*lineHeight, float64(utf8.RuneCountInString(l.text))*charWidth, class,
			html.EscapeString(l.text))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
