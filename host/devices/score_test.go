// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// scores are the raw and the normalised scores on all nodes that fit; nil where the plugin does not score.
func (w *world) scores(p *cluster.Pod) (raw, normalised []int64) {
	w.fits(p)
	s := w.s()
	var rows []cluster.NodeIdx
	for n := range s.Rows() {
		if w.pl.last != nil && w.pl.last.found(cluster.NodeIdx(n)).out != nil {
			rows = append(rows, cluster.NodeIdx(n))
		}
	}
	score, err := w.pl.PrepareUncached(s, p, rows)
	if err != nil || score == nil {
		return nil, nil
	}
	raw = make([]int64, len(rows))
	score.Rows(s, rows, raw)
	for i, n := range rows {
		if plain := score.Plain(s, s.View(n)); plain != raw[i] {
			w.t.Fatalf("row %d: plain %d, column %d", n, plain, raw[i])
		}
	}
	normalised = append(normalised, raw...)
	score.Normalize(s, rows, normalised)
	return raw, normalised
}

// score-reversed, score-first-claim-only
func TestEarlierAlternativesScoreHigher(t *testing.T) {
	w := twoGPUs(t)
	w.claim("c", either("r", "new", "old"))
	raw, normalised := w.scores(w.pod("p", uses("c")))
	expect(t, "raw", raw, []int64{7, 8})
	expect(t, "normalised", normalised, []int64{87, 100})

	w.slice("a", device("d0", "old"), device("d1", "old"))
	w.slice("b", device("d0", "new"), device("d1", "new"))
	w.claim("plain", want("r", 1))
	raw, _ = w.scores(w.pod("q", uses("plain"), uses("c")))
	expect(t, "with a claim before it", raw, []int64{7, 8})

	if !w.pl.Skips(w.s(), w.pod("none")) || w.pl.Skips(w.s(), w.pod("p", uses("c"))) {
		t.Fatal("skips")
	}
	if raw, _ := w.scores(w.pod("r", uses("plain"))); raw != nil {
		t.Fatalf("without alternatives: %v", raw)
	}
}

// An allocated claim with alternatives counts the same on every node, next to one that is to be allocated.
func TestAllocatedAlternativesCountToo(t *testing.T) {
	w := twoGPUs(t)
	w.slice("a", device("d0", "old"), device("d1", "old"))
	c := allocated(newClaim("done", either("r", "new", "old")), "a", "d1")
	c.Status.Allocation.Devices.Results[0].Request = "r/sub-old"
	w.set(c)
	w.claim("c", either("s", "old", "new"))
	raw, _ := w.scores(w.pod("p", uses("done"), uses("c")))
	expect(t, "raw", raw, []int64{15})
	if raw, _ := w.scores(w.pod("q", uses("done"))); raw != nil {
		t.Fatalf("nothing to allocate: %v", raw)
	}
}
