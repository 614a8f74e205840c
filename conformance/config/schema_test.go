// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	ours "github.com/kumiki-scheduler/kumiki/config"
)

var update = flag.Bool("update", false, "write what is generated into its files")

// TestTheSchemaIsTheGeneratedOne compares the checked-in schema with the one generated from the types. With -update
// it writes the file.
func TestTheSchemaIsTheGeneratedOne(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "config", "schema.json"), want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(ours.Schema(), want) {
		t.Error("config/schema.json is not what is generated: run the test with -update")
	}
}

// TestTheSchemaHoldsWhatIsAccepted: a file that kumiki accepts is valid by the schema; so an editor never complains
// about a good file. Of the files that are refused, it finds a good part.
func TestTheSchemaHoldsWhatIsAccepted(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	check := checker{schema["definitions"].(object)}
	refused, found := 0, 0
	for n := range uint64(6000) {
		c := Generate(1, n)
		if slices.Contains(c.Faults, "a field twice") {
			continue // a matter of the text
		}
		var file any
		if err := yaml.Unmarshal(c.Text, &file); err != nil {
			t.Fatal(err)
		}
		wrong := check.find(schema, file, "")
		answer, _ := Kumiki(c.Text)
		if answer.Accepted() && wrong != "" {
			t.Errorf("case %d, faults %q: accepted, and wrong by the schema: %s\n%s", n, c.Faults, wrong, c.Text)
		}
		if !answer.Accepted() {
			refused++
			if wrong != "" {
				found++
			}
		}
	}
	t.Logf("of %d files that kumiki refuses, the schema finds %d", refused, found)
	if found*2 < refused {
		t.Errorf("of %d files that kumiki refuses, the schema finds only %d", refused, found)
	}
}
