// SPDX-License-Identifier: Apache-2.0

package instances

import "sync"

// mailbox is an unbounded queue between two goroutines.
type mailbox[T any] struct {
	news chan struct{} // one slot: something was put

	mu   sync.Mutex
	list []T
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{news: make(chan struct{}, 1)} }

// put adds messages. It does not block.
func (m *mailbox[T]) put(messages ...T) {
	m.mu.Lock()
	m.list = append(m.list, messages...)
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// take removes all messages and returns them, in the order in which they were put.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.list
	m.list = nil
	return taken
}
