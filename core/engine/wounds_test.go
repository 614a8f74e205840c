// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// The wounds of other gang schedulers are stories named after their issues, testdata/wound_*.txt. Each of them, and each story of
// what a gang has beyond its needs, names the mutant that makes it go another way.
var catches = regexp.MustCompile(`Catches (\w+)`)

// TestStoriesCatchWhatTheyName puts the mutant that a story names into the engine, and demands that the story sees it.
func TestStoriesCatchWhatTheyName(t *testing.T) {
	var files []string
	for _, pattern := range []string{"wound_*", "gang_elastic", "gang_spared", "gang_resized_restart", "gang_again", "gang_part", "gang_timeout"} {
		found, err := filepath.Glob("testdata/" + pattern + ".txt")
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			named := catches.FindAllSubmatch(raw, -1)
			if len(named) == 0 {
				t.Fatal("names no mutant")
			}
			for _, n := range named {
				m := engine.MutantNamed[string(n[1])]
				if m == 0 {
					t.Fatalf("there is no mutant %s", n[1])
				}
				restore := engine.SetMutant(m)
				seen := goesAnotherWay(t, file, func(script []byte) []byte { return newStory(t).play(script) })
				restore()
				if !seen {
					t.Errorf("does not see the mutant %s", n[1])
				}
			}
		})
	}
}
