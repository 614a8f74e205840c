// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// states are what the table may say of us.
var states = []string{"fixed on", "built", "unsupported", "followed", "own", "later"}

// TestTheTableOfGates holds docs/compatibility.md to upstream: every gate that its scheduler asks, its default and its
// stage, and one of our states. A gate that upstream gains, drops or changes makes it fail.
func TestTheTableOfGates(t *testing.T) {
	gates, err := Gates()
	if err != nil {
		t.Fatal(err)
	}
	if len(gates) < 30 {
		t.Fatalf("only %d gates found in upstream's source", len(gates))
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{} // gate -> cells
	var order []string
	_, section, found := strings.Cut(string(text), "\n## Feature gates\n")
	if !found {
		t.Fatal("docs/compatibility.md has no section on feature gates")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name := strings.Trim(cells[0], "`"); len(cells) >= 5 && strings.HasPrefix(cells[0], "`") {
			rows[name] = cells
			order = append(order, name)
		}
	}
	for _, g := range gates {
		on := map[bool]string{true: "on", false: "off"}[g.Default]
		cells, there := rows[g.Name]
		if !there {
			t.Errorf("the table lacks this row:\n| `%s` | %s | %s | ? | ? |", g.Name, on, g.Stage)
			continue
		}
		delete(rows, g.Name)
		if cells[1] != on || cells[2] != g.Stage {
			t.Errorf("%s: the table says %s, %s; upstream says %s, %s", g.Name, cells[1], cells[2], on, g.Stage)
		}
		if !slices.Contains(states, cells[3]) {
			t.Errorf("%s: %q is no state; one of %v is", g.Name, cells[3], states)
		}
		if cells[3] == "fixed on" && !g.Default {
			t.Errorf("%s: fixed on, while upstream's default is off", g.Name)
		}
		if cells[4] == "" {
			t.Errorf("%s: the table does not say what it is about", g.Name)
		}
	}
	for name := range rows { // order: each is reported
		t.Errorf("%s: upstream's scheduler does not ask this gate", name)
	}
	if !slices.IsSorted(order) {
		t.Error(fmt.Sprint("the rows are not sorted: ", order))
	}
}
