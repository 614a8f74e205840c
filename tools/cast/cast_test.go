// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAScriptIsPlayed(t *testing.T) {
	script, err := parse("# comment\n= WORD=one\n= TWO=$WORD-two\n! echo hidden\n" +
		"& ready :: echo ready; exec sleep 60\n? one :: echo $WORD\n$ echo $TWO '<&'\n")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := play(script, io.Discard)
	if err != nil || len(shown) != 1 || shown[0] != (step{"echo $TWO '<&'", "one-two <&\n"}) {
		t.Fatalf("shown %q, %v", shown, err)
	}
	r := recording{title: "t", steps: shown}
	checkCast(t, r.cast(), "$ echo $TWO '<&'\r\none-two <&\r\n\r\n")
	checkXML(t, r.svg())
}

func TestMistakesInAScriptAreErrors(t *testing.T) {
	for _, src := range []string{"echo\n", "? echo\n", "& echo\n"} {
		if _, err := parse(src); err == nil {
			t.Errorf("%q is accepted", src)
		}
	}
	script, err := parse("$ exit 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play(script, io.Discard); err == nil {
		t.Error("a command that fails is recorded")
	}
}

// TestTheRecordingsOfTheDocumentsAreWhole reads the recordings in docs/img: each has a script, a cast that shows the
// commands of the script in order, and an SVG with the same lines.
func TestTheRecordingsOfTheDocumentsAreWhole(t *testing.T) {
	scripts, err := filepath.Glob("../../docs/img/*.script")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts, %v", err)
	}
	for _, name := range scripts {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, err := parse(string(src))
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(name, ".script")
		cast, err := os.ReadFile(base + ".cast")
		if err != nil {
			t.Fatal(err)
		}
		svg, err := os.ReadFile(base + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		text := checkCast(t, cast, "")
		drawn := checkXML(t, svg)
		for _, l := range script {
			if l.sign != '$' {
				continue
			}
			_, after, found := strings.Cut(text, "$ "+l.command+"\r\n")
			if !found {
				t.Errorf("%s.cast does not show %q; make recordings-of-commands", base, l.command)
			}
			text = after
			if !strings.Contains(drawn, "$ "+l.command) {
				t.Errorf("%s.svg does not show %q; make recordings-of-commands", base, l.command)
			}
		}
	}
}

// checkCast checks the form and returns the text that is shown.
func checkCast(t *testing.T, cast []byte, want string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(cast)))
	var head struct{ Version, Width, Height int }
	if err := d.Decode(&head); err != nil || head.Version != 2 || head.Width == 0 || head.Height == 0 {
		t.Fatalf("header %+v, %v", head, err)
	}
	text, last := "", -1.0
	for {
		var event [3]any
		if err := d.Decode(&event); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		at, ok := event[0].(float64)
		if !ok || at < last || event[1] != "o" {
			t.Fatalf("event %v after %v", event, last)
		}
		last = at
		text += event[2].(string)
	}
	if want != "" && text != want {
		t.Errorf("shows %q, want %q", text, want)
	}
	return text
}

// checkXML checks that an SVG is well-formed, and returns its text.
func checkXML(t *testing.T, svg []byte) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	text := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			text += string(c)
		}
	}
}
