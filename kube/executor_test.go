// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// keptEffects is a carrier that keeps what it was given.
type keptEffects struct {
	mu         sync.Mutex
	binds      []engine.Bind
	conditions []engine.Condition
	events     []engine.WriteEvent
	prepares   []engine.Prepare
	releases   []engine.Release
	evicts     []engine.Evict
	statuses   []engine.GangStatus
}

func (k *keptEffects) SetGangStatus(s engine.GangStatus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.statuses = append(k.statuses, s)
}

func (k *keptEffects) Evict(e engine.Evict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evicts = append(k.evicts, e)
}

func (k *keptEffects) Prepare(p engine.Prepare) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prepares = append(k.prepares, p)
}

func (k *keptEffects) Release(r engine.Release) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.releases = append(k.releases, r)
}

func (k *keptEffects) Bind(b engine.Bind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.binds = append(k.binds, b)
}

func (k *keptEffects) Recall(engine.Recall) {}

func (k *keptEffects) SetCondition(c engine.Condition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conditions = append(k.conditions, c)
}

func (k *keptEffects) Nominate(engine.Nominate) {}

func (k *keptEffects) WriteEvent(e engine.WriteEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
}

// bound counts the binds that were asked for.
func (k *keptEffects) bound() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.binds)
}
