// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"slices"
	"strings"
	"testing"
)

const sample = "text\n" +
	"```console\n$ one \\\n  more\nshown\n$ two\n```\n" +
	"```yaml\n# a.yaml\nkind: Pod\n```\n" +
	"```console watch\nlater\n^C\nlast\n```\n"

func TestAPageIsReadInOrder(t *testing.T) {
	page, err := Parse("sample.md", sample)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Blocks) != 3 {
		t.Fatalf("want 3 blocks, got %+v", page.Blocks)
	}
	first := page.Blocks[0].Steps()
	if len(first) != 2 || first[0].Command != "one \\\n  more" || first[0].Line != 3 ||
		!slices.Equal(first[0].Want, []string{"shown"}) || first[1].Command != "two" || first[1].Line != 6 {
		t.Errorf("first block: %+v", first)
	}
	if name, ok := page.Blocks[2].Console(); name != "watch" || !ok {
		t.Errorf("third block is typed at %q, %v", name, ok)
	}
	last := page.Blocks[2].Steps()
	if len(last) != 2 || last[0].Command != "" || last[0].Stop || !last[1].Stop || !slices.Equal(last[1].Want, []string{"last"}) {
		t.Errorf("third block: %+v", last)
	}
}

// The mutant is a chapter with a command that the test does not run.
func TestACommandThatWouldNotBeRunIsAnError(t *testing.T) {
	for _, text := range []string{
		"```sh\n$ one\n```\n",
		"```\n$ one\n```\n",
		"    $ one\n",
		"1. first:\n   ```console\n   $ one\n   ```\n",
		"```console\n$ one\n",
	} {
		if _, err := Parse("sample.md", text); err == nil || !strings.HasPrefix(err.Error(), "sample.md:") {
			t.Errorf("%q: want an error with the place, got %v", text, err)
		}
	}
}
