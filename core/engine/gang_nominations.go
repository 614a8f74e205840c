// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// nominationsFor returns the nominations that a search for placements of a unit respects.
func (e *Engine) nominationsFor(unit *queue.Unit) place.Nominations {
	all := e.blocked.NominationsFor(unit.Members)
	if unit.Extra() {
		all = e.blocked.Nominations()
	}
	var declared *int32
	if obj := e.gangObject(unit.Gang); obj != nil {
		declared = obj.Priority
	}
	return gang.NominationsFor(all, unit.Gang, declared)
}
