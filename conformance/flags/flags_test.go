// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated into its files")

// TestTheListsAreThoseOfUpstream compares what is checked in with what upstream's command says of itself. A flag or
// gate that upstream gains, drops or changes makes it fail. With -update it writes the files.
func TestTheListsAreThoseOfUpstream(t *testing.T) {
	for _, tt := range []struct {
		file  string
		least int // entries, so that an empty list is no success
		list  func() ([]byte, error)
	}{
		{"testdata/flags.json", 50, func() ([]byte, error) { return lines(Flags()) }},
		{"gates/table.json", 200, func() ([]byte, error) { return lines(Gates()) }},
	} {
		want, err := tt.list()
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(want, []byte("\n")) - 2; n < tt.least {
			t.Errorf("%s: only %d entries found", tt.file, n)
		}
		path := filepath.Join("..", "..", "app", "command", filepath.FromSlash(tt.file))
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("app/command/%s is not what is generated (%v): run the test with -update", tt.file, err)
		}
	}
}
