// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// askForeign lets foreign code reject rows that fit.
func (pl *Placer) askForeign(s cluster.Snapshot, sr *search) {
	f := pl.profile.Foreign
	if f == nil || !f.Takes(sr.pod) {
		return
	}
	sr.readRows()
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			sr.names = append(sr.names, s.NodeName(n))
		}
	}
	if len(sr.names) == 0 {
		return
	}
	rejected, err := f.Filter(sr.pod, sr.names)
	if err != nil {
		sr.err = err
		return
	}
	for _, name := range sr.names {
		if why, no := rejected[name]; no {
			n, _ := s.Find(name)
			sr.ownRows()
			sr.verdicts[n] = plugin.Foreign
			if sr.foreign == nil {
				sr.foreign = map[cluster.NodeIdx]ForeignRejection{}
			}
			sr.foreign[n] = why
		}
	}
}
