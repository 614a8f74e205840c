// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"errors"
	"testing"
	"testing/synctest"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// ErrLost is a reply that got lost.
var ErrLost = errors.New("http2: connection lost")

// Once fails the first call of a verb only.
func Once(verb string, err error) func(string, string) error {
	return Times(1, verb, err)
}

// Times fails the first n calls of a verb only.
func Times(n int, verb string, err error) func(string, string) error {
	return func(v, _ string) error {
		if v == verb && n > 0 {
			n--
			return err
		}
		return nil
	}
}

// Events are the events that the API server has, when nothing happens any more.
func Events(t *testing.T, api *fake.Clientset) []eventsv1.Event {
	t.Helper()
	synctest.Wait()
	list, err := api.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
