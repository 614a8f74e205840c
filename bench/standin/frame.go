// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/binary"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// protobuf is the content type of single objects and lists, and of watches.
const (
	protobuf      = "application/vnd.kubernetes.protobuf"
	protobufWatch = protobuf + ";stream=watch"
)

// magic precedes an object in protobuf (upstream: apimachinery, runtime/serializer/protobuf).
var magic = []byte("k8s\x00")

// marshaler is an API object.
type marshaler interface {
	Marshal() ([]byte, error)
}

// envelop wraps an object's bytes in an envelope with its kind.
func envelop(kind schema.GroupVersionKind, raw []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, Raw: raw}
	return append(magic[:len(magic):len(magic)], must(unknown.Marshal())...)
}

// frame is one event of a watch as it goes over the wire: its length in four bytes, and the event.
func frame(event watch.EventType, kind schema.GroupVersionKind, obj marshaler) []byte {
	ev := metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: envelop(kind, must(obj.Marshal()))}}
	body := must(ev.Marshal())
	out := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(out, uint32(len(body)))
	return append(out, body...)
}

// lastOfList is the bookmark that ends a list that streams in.
func lastOfList(kind schema.GroupVersionKind, version string) []byte {
	// Metadata is the first field of every object: these are the bytes of any kind.
	return frame(watch.Bookmark, kind, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
}

// object returns the object's own bytes in a frame.
func object(frame []byte) []byte {
	var ev metav1.WatchEvent
	var unknown runtime.Unknown
	if err := ev.Unmarshal(frame[4:]); err != nil {
		panic(fmt.Sprintf("standin: a frame of its own cannot be read: %v", err))
	}
	if err := unknown.Unmarshal(ev.Object.Raw[len(magic):]); err != nil {
		panic(fmt.Sprintf("standin: an object of its own cannot be read: %v", err))
	}
	return unknown.Raw
}

// list is a list of objects in one piece.
func list(kind schema.GroupVersionKind, version string, frames [][]byte) []byte {
	// Every list has its metadata as field 1 and its items as field 2, as NodeList has; the items are put in as they are.
	raw := must((&corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: version}}).Marshal())
	const itemsField = 2<<3 | 2 // length-delimited
	for _, f := range frames {
		item := object(f)
		raw = binary.AppendUvarint(append(raw, itemsField), uint64(len(item)))
		raw = append(raw, item...)
	}
	kind.Kind += "List"
	return envelop(kind, raw)
}

// must panics on an error that cannot occur: API objects always marshal.
func must(raw []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("standin: an API object does not marshal: %v", err))
	}
	return raw
}
