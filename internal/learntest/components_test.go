// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package learntest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestPagesWithComponents plays the pages that run controllers of other projects: `make ecosystem`. A page is listed
// under the first component that it builds.
func TestPagesWithComponents(t *testing.T) {
	pages := map[string][]Page{} // component -> pages
	var order []string
	for _, path := range played(t) {
		page, _ := readPage(t, path)
		names := page.components()
		if len(names) == 0 {
			continue
		}
		if pages[names[0]] == nil {
			order = append(order, names[0])
		}
		pages[names[0]] = append(pages[names[0]], page)
	}
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			for _, page := range pages[name] {
				t.Run(strings.TrimSuffix(filepath.Base(page.Path), ".md"), func(t *testing.T) {
					testcluster.Reserve(t)
					play(t, page, readerEnv(t), patience)
				})
			}
		})
	}
}
