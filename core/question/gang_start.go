// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// startByEnds returns the earliest time at which a gang fits by the known ends of pods, with what it rests on; 0 if
// it does not fit even when all of those pods have gone.
func (w *supposition) startByEnds(
	key cluster.GangKey, draw string, prof *engine.Profile, need gang.Need,
) (at record.Time, basis string) {
	s := w.trial.Snapshot()
	known := gang.KnownEnds(s, w.view.Now(), gang.Agreed(s, key, need.Members))
	ends := gang.EarliestStart(known, func(gone []gang.PodEnd) bool {
		mark := w.trial.Checkpoint()
		defer w.trial.Rollback(mark)
		for _, e := range gone {
			w.trial.Evict(e.Pod.UID)
		}
		return w.placeGang(draw, prof, need).Verdict == gang.Placed
	})
	if len(ends) == 0 {
		return 0, ""
	}
	return ends[len(ends)-1].At, restsOn(ends)
}

// restsOn returns what the ends of pods rest on, in words.
func restsOn(ends []gang.PodEnd) string {
	var by [cluster.EndsIfEvicted + 1]int
	for _, e := range ends {
		by[e.Basis]++
	}
	var parts []string
	for basis, words := range [...]string{
		cluster.EndsDeleted: "terminate", cluster.EndsByLimit: "have activeDeadlineSeconds",
		cluster.EndsAsStated: "state it by annotation", cluster.EndsIfEvicted: "may be evicted for it",
	} {
		if by[basis] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[basis], words))
		}
	}
	return fmt.Sprintf("%d pods end until then: %s", len(ends), strings.Join(parts, ", "))
}
