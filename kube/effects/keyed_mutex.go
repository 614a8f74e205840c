// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"sync"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// keyedMutex lets those who write one object go one after the other, and each start from what the one before has
// written. Pods that share a claim would otherwise all read it, and all but one be refused and read it again.
type keyedMutex[T any] struct {
	mu sync.Mutex
	of map[cluster.UID]*keyLock[T] // object -> its lock; only while a writer has it or waits for it
}

// keyLock is one object that is written.
type keyLock[T any] struct {
	// free holds a token while no writer has the lock. It is a channel because the lock is held as long as calls take.
	free chan struct{}
	// users write the object or wait; guarded by turns.mu.
	users int
	// last is the object as the last of them left it, nil if that is not known; for the holder of the lock.
	last *T
}

// take waits for the lock of an object. The caller must give it back.
func (t *keyedMutex[T]) take(uid cluster.UID) *keyLock[T] {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[cluster.UID]*keyLock[T]{}
	}
	one := t.of[uid]
	if one == nil {
		one = &keyLock[T]{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.of[uid] = one
	}
	one.users++
	t.mu.Unlock()
	<-one.free
	return one
}

// give ends a turn.
func (t *keyedMutex[T]) give(uid cluster.UID, one *keyLock[T]) {
	one.free <- struct{}{}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(t.of, uid)
	}
}
