// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"slices"
	"testing"
)

// Messages are taken once, in the order in which they were put, and putting never blocks. After each put there is news,
// once for any number of them.
func TestMailbox(t *testing.T) {
	m := newMailbox[int]()
	for i := range 1000 {
		m.put(2*i, 2*i+1)
	}
	<-m.news
	got := m.take()
	if len(got) != 2000 || !slices.IsSorted(got) {
		t.Fatalf("took %d, in order: %v", len(got), slices.IsSorted(got))
	}
	select {
	case <-m.news:
		t.Error("news twice")
	default:
	}
	if left := m.take(); len(left) > 0 {
		t.Errorf("took %v again", left)
	}
}
