// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/metrics"
)

const (
	// maxAnswer bounds what is read of an answer, in bytes. A status is some hundred; an event that was created is at
	// most what etcd takes of an object, 1.5 MiB.
	maxAnswer = 2 << 20
	// maxText bounds what an error quotes of an answer that is no status, in bytes, as client-go does.
	maxText = 2048
	// maxClosed bounds what is read of an answer that is not used, so that its connection can be used again.
	maxClosed = 2 << 10
)

// scratch are buffers for reading what is not kept.
var scratch = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// read ends a write with its last answer: nil if it was carried out. An answer that breaks off is no answer.
func (k *kind) read(ctx context.Context, o outgoing, answer *http.Response) error {
	defer answer.Body.Close()
	if warnings := answer.Header["Warning"]; len(warnings) > 0 {
		parsed, _ := net.ParseWarningHeaders(warnings) // what cannot be parsed is no warning
		for _, w := range parsed {
			k.warnings.HandleWarningHeaderWithContext(ctx, w.Code, w.Agent, w.Text)
		}
	}
	if answer.StatusCode >= http.StatusOK && answer.StatusCode <= http.StatusPartialContent {
		n, err := discard(answer.Body)
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		metrics.ResponseSize.Observe(ctx, http.MethodPost, k.base.Host, float64(n))
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return k.refusal(ctx, o, answer, body)
}

// discard reads an answer to its end, or up to maxAnswer bytes: what a server goes on to send says nothing more.
func discard(body io.Reader) (n int, err error) {
	buffer := scratch.Get().(*[4 << 10]byte)
	defer scratch.Put(buffer)
	for n < maxAnswer {
		got, err := body.Read(buffer[:])
		n += got
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// closeAnswer ends an answer that is not used.
func closeAnswer(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, maxClosed) // it only saves a connection
	answer.Body.Close()
}

// refusal is the error that an answer is. A status in its body decides, as far as there is one of at most maxAnswer
// bytes; otherwise the code does.
func (k *kind) refusal(ctx context.Context, o outgoing, answer *http.Response, body []byte) error {
	contentType := answer.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if contentType == "" {
		media, err = k.contentType, nil
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	message := "unknown"
	switch {
	case len(body) > maxAnswer:
		message = fmt.Sprintf("the answer has more than %d bytes", maxAnswer)
		body = nil
	case contentType == "" || strings.HasPrefix(media, "text/"):
		message = strings.TrimSpace(string(body[:min(len(body), maxText)]))
	}
	seconds, _ := retryAfterSeconds(answer)
	byCode := apierrors.NewGenericServerResponse(
		answer.StatusCode, http.MethodPost, k.resource, o.name, message, seconds, true)
	decoder, err := k.decoders.Decoder(media, params)
	if err != nil || len(body) == 0 {
		return byCode
	}
	metrics.ResponseSize.Observe(ctx, http.MethodPost, k.base.Host, float64(len(body)))
	if status := statusIn(decoder, body); status != nil {
		return apierrors.FromObject(status)
	}
	return byCode
}

// statusIn is the failure that a body contains; nil for none. A status of servers that name no version is one of v1.
func statusIn(decoder runtime.Decoder, body []byte) *metav1.Status {
	got, _, err := decoder.Decode(body, &schema.GroupVersionKind{Version: "v1"}, nil)
	if err != nil {
		return nil
	}
	if status, is := got.(*metav1.Status); is && status.Status == metav1.StatusFailure {
		return status
	}
	return nil
}
