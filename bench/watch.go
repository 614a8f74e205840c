// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// seen is a store of a reflector that shows each pod of a list or a watch once and keeps only its UID.
type seen struct {
	pod    func(*corev1.Pod)
	listed func() // called after the first list, once
	known  map[string]bool
	once   sync.Once
}

var _ cache.ReflectorStore = (*seen)(nil)

// Add shows a pod that was not seen before.
func (s *seen) Add(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch of pods: got a %T", obj)
	}
	if uid := string(p.UID); !s.known[uid] {
		s.known[uid] = true
		s.pod(p)
	}
	return nil
}

// Update is Add.
func (s *seen) Update(obj any) error { return s.Add(obj) }

// Delete forgets nothing: no pod of a run comes back.
func (s *seen) Delete(any) error { return nil }

// Replace shows a full list.
func (s *seen) Replace(list []any, _ string) error {
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	s.once.Do(s.listed)
	return nil
}

// Resync does nothing.
func (s *seen) Resync() error { return nil }
