package timeseries

import (
	"bytes"
	"context"
	"errors"
)

// Receiver writes what a broker's messages say: each is one line of its format, or several. It is used by one goroutine at a time.
type Receiver struct {
	w        *Writer
	parser   parser
	rejected func(Rejected)
}

// NewReceiver makes a receiver of a format; CSV needs Mapping.Header, since a message has no line of names. rejected gets each line that cannot be used, with its number among
// the lines of one call and its text; nil: they are left out.
func NewReceiver(w *Writer, format Format, mapping Mapping, rejected func(Rejected)) (*Receiver, error) {
	mapping = mapping.withDefaults(format)
	if err := mapping.validate(); err != nil {
		return nil, err
	}
	if format == CSV && len(mapping.Header) == 0 {
		return nil, errors.New("CSV in messages needs the names of its columns: Mapping.Header")
	}
	p, err := newParser(format, mapping)
	if err != nil {
		return nil, err
	}
	if rejected == nil {
		rejected = func(Rejected) {}
	}
	return &Receiver{w, p, rejected}, nil
}

// Receive writes the samples of some messages, and comes back when all are durable, with how many they are: then the messages may be acknowledged. After an error nothing is to be
// acknowledged; what was written already is the same when it comes again. Lines that cannot be used are no error.
func (r *Receiver) Receive(ctx context.Context, messages ...[]byte) (written int, err error) {
	var samples []Sample
	var at []int64
	var texts []string
	number := int64(0)
	reject := func(line int64, text string, why *SampleError) {
		r.rejected(Rejected{Line: line, Reason: why.Reason, Message: why.Message, Text: text})
	}
	for _, message := range messages {
		for line := range bytes.SplitSeq(message, []byte("\n")) {
			number++
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) > lineMax {
				reject(number, string(line[:1000]), refuse(ReasonLong, "the line has more than %d bytes", lineMax))
				continue
			}
			read, bad := r.parser.parse(line)
			if bad != nil {
				reject(number, string(line), bad)
			}
			if bad != nil || read == nil {
				continue
			}
			samples, at, texts = append(samples, read.Sample), append(at, number), append(texts, string(line))
		}
	}
	if len(samples) == 0 {
		return 0, nil
	}
	err = r.w.Write(ctx, samples...)
	var partly *WriteError
	if !errors.As(err, &partly) {
		return len(samples), err
	}
	if partly.Err != nil && !isValidation(partly.Err) {
		return 0, err
	}
	for _, x := range partly.Refused {
		reject(at[x.Index], texts[x.Index], x.Err)
	}
	for _, i := range partly.Unwritten { // the endpoint does not take these, now or ever
		reject(at[i], texts[i], refuse(ReasonRefused, "%v", partly.Err))
	}
	return len(samples) - len(partly.Refused) - len(partly.Unwritten), nil
}
