// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"fmt"
	"strings"
)

// Page is a chapter.
type Page struct {
	Path   string
	Blocks []Block
}

// Block is a fenced block.
type Block struct {
	Line  int      // of its first line of content
	Info  []string // words behind the fence
	Lines []string
}

// Console reports whether the block is typed at a terminal, and at which; the first has an empty name.
func (b Block) Console() (terminal string, ok bool) {
	if len(b.Info) == 0 || b.Info[0] != "console" {
		return "", false
	}
	return strings.Join(b.Info[1:], " "), true
}

// Step is something typed at a terminal, or nothing, and what is seen after it.
type Step struct {
	Line    int
	Command string // empty: nothing is typed
	Stop    bool   // ^C is typed
	Want    []string
}

// prompt begins a line that the reader types, interrupt is a key that the reader presses.
const (
	prompt    = "$ "
	interrupt = "^C"
)

// Steps splits a console block. A backslash at the end of a line goes on with the next.
func (b Block) Steps() []Step {
	var steps []Step
	for i := 0; i < len(b.Lines); i++ {
		line := b.Lines[i]
		command, typed := strings.CutPrefix(line, prompt)
		switch {
		case typed:
			s := Step{Line: b.Line + i, Command: command}
			for strings.HasSuffix(s.Command, `\`) && i+1 < len(b.Lines) {
				i++
				s.Command += "\n" + b.Lines[i]
			}
			steps = append(steps, s)
		case line == interrupt:
			steps = append(steps, Step{Line: b.Line + i, Stop: true})
		default:
			if len(steps) == 0 {
				steps = append(steps, Step{Line: b.Line})
			}
			last := &steps[len(steps)-1]
			last.Want = append(last.Want, line)
		}
	}
	return steps
}

const fence = "```"

// Parse reads a page. A command that would not be run is an error: one outside of a console block, or in a block whose
// fence is indented.
func Parse(path, text string) (Page, error) {
	page := Page{Path: path}
	var open *Block
	for i, line := range strings.Split(text, "\n") {
		info, isFence := strings.CutPrefix(line, fence)
		switch {
		case isFence && open == nil:
			open = &Block{Line: i + 2, Info: strings.Fields(info)}
		case isFence && info == "":
			page.Blocks = append(page.Blocks, *open)
			open = nil
		case open != nil:
			open.Lines = append(open.Lines, line)
			if _, console := open.Console(); !console && strings.HasPrefix(strings.TrimSpace(line), prompt) {
				return page, fmt.Errorf("%s:%d: a command in a block that is not run; write %sconsole", path, i+1, fence)
			}
		case strings.HasPrefix(strings.TrimSpace(line), prompt), strings.HasPrefix(strings.TrimSpace(line), fence):
			return page, fmt.Errorf("%s:%d: a command or a fence that is not at the start of a console block", path, i+1)
		}
	}
	if open != nil {
		return page, fmt.Errorf("%s:%d: the block does not end", path, open.Line)
	}
	return page, nil
}
