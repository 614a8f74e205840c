// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// blockedHost is the engine as core/blocked sees it.
type blockedHost struct{ e *Engine }

func (h blockedHost) Emit(f Effect)                                { h.e.emit(f) }
func (h blockedHost) Now() record.Time                             { return h.e.now }
func (h blockedHost) Pending(uid cluster.UID) bool                 { return h.e.pending[uid] != nil }
func (h blockedHost) Reconsider(key cluster.GangKey, cause string) { h.e.reconsider(key, cause) }
