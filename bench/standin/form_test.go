// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"bytes"
	"encoding/binary"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// TestFramesAreThoseOfAPIMachinery compares the events that are put together by hand with marshalled ones, at the sizes
// where a length takes another byte. Fault: unknownSizeShort.
func TestFramesAreThoseOfAPIMachinery(t *testing.T) {
	kinds := []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"}}
	var sizes []int
	for _, edge := range []int{1, 1 << 7, 1 << 14, 1 << 21} {
		for n := max(1, edge-60); n < edge+10; n++ {
			sizes = append(sizes, n)
		}
	}
	for _, kind := range kinds {
		for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Bookmark} {
			for _, n := range sizes {
				raw := bytes.Repeat([]byte{7}, n)
				if got := newForm(kind).appendFrame(nil, event, raw); !bytes.Equal(got, marshalled(t, kind, event, raw)) {
					t.Fatalf("%s of a %s with %d bytes is not what apimachinery writes", event, kind.Kind, n)
				}
			}
		}
	}
}

// marshalled is an event as the types of apimachinery write it.
func marshalled(t *testing.T, kind schema.GroupVersionKind, event watch.EventType, raw []byte) []byte {
	t.Helper()
	unknown := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, Raw: raw}
	object, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	ev := metav1.WatchEvent{Type: string(event),
		Object: runtime.RawExtension{Raw: append(bytes.Clone(magic), object...)}}
	body, err := ev.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
