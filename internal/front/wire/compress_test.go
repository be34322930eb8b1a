package wire

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// packed returns text in gzip.
func packed(t *testing.T, text string) string {
	t.Helper()
	return string(pack(codingGzip, []byte(text)))
}

// unpacked returns the text that was compressed.
func unpacked(t *testing.T, coding, body string) string {
	t.Helper()
	var unpacker io.Reader
	var err error
	if coding == codingGzip {
		unpacker, err = gzip.NewReader(strings.NewReader(body))
	} else {
		unpacker, err = zlib.NewReader(strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacker)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A compressed body runs as the plain one does. One that cannot be decompressed is the server's
// fault, as at Amazon, and runs nothing.
func TestCompressedRequests(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	const text = `{"TableName":"Tab","Item":{"k":{"S":"a"}}}`
	gzipped, deflated := packed(t, text), string(pack(codingDeflate, []byte(text)))
	for _, c := range []struct {
		name, coding, body string
		status             int
		part               string // of the answer
	}{
		{"gzip", "gzip", gzipped, 200, "{}"},
		{"gzip in any case", "GZip", gzipped, 200, "{}"},
		{"deflate", "deflate", deflated, 200, "{}"},
		{"deflate in any case", "DEFLATE", deflated, 200, "{}"},
		{"identity", "identity", text, 200, "{}"},
		{"none", "", text, 200, "{}"},
		{"nothing, compressed", "gzip", packed(t, ""), 400, "SerializationException"},
		{"JSON that is none, compressed", "gzip", packed(t, "{"), 400, "SerializationException"},
		{"brotli", "br", text, 500, `Content-Encoding \"br\" is not supported; use gzip, deflate or none`},
		{"two", "gzip, deflate", gzipped, 500, "not supported"},
		{"x-gzip", "x-gzip", gzipped, 500, "not supported"},
		{"no text", "\xff\n", gzipped, 500, `Content-Encoding \"\\xff\\n\" is not supported`},
		{"plain as gzip", "gzip", text, 500, "the body is not gzip: "},
		{"plain as deflate", "deflate", text, 500, "the body is not deflate: "},
		{"gzip as deflate", "deflate", gzipped, 500, "the body is not deflate: "},
		{"deflate as gzip", "gzip", deflated, 500, "the body is not gzip: "},
		{"raw deflate", "deflate", deflated[2:], 500, "the body is not deflate: "},
		{"truncated gzip", "gzip", gzipped[:len(gzipped)-5], 500, "the body is not gzip: unexpected EOF"},
		{"truncated deflate", "deflate", deflated[:len(deflated)-5], 500, "the body is not deflate: unexpected EOF"},
		{"wrong checksum", "gzip", gzipped[:len(gzipped)-8] + "12345678", 500, "the body is not gzip: "},
		{"empty", "gzip", "", 500, "the body is empty"},
		{"empty deflate", "deflate", "", 500, "the body is empty"},
	} {
		call(s, "DeleteItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`)
		got := call(s, "PutItem", c.body, "Content-Encoding", c.coding)
		if got.status != c.status || !strings.Contains(got.body, c.part) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
		if c.status == 500 && !strings.Contains(got.body, `#InternalServerError","message"`) {
			t.Errorf("%s: %s", c.name, got.body)
		}
		stored := call(s, "Scan", `{"TableName":"Tab","Select":"COUNT"}`).body
		if wrote := strings.Contains(stored, `"Count":1`); wrote != (c.status == 200) {
			t.Errorf("%s: the table has %s", c.name, stored)
		}
	}
}

// The operation's name and the signature are checked before the body is decompressed.
func TestOrderBeforeDecompression(t *testing.T) {
	s := newTestServer(t, Options{Keys: keys.Fixed(sigv4.Credential{AccessKey: "a", SecretKey: "b"})})
	open := newTestServer(t, Options{})
	mounted := newMountedServer(Options{})
	for _, c := range []struct {
		server *Server
		in     *Request
		status int
		code   string
	}{
		{s, post("Nothing", "{}", "Content-Encoding", "br"), 400, "UnknownOperationException"},
		{s, post("ListTables", "{}", "Content-Encoding", "br"), 400, "MissingAuthenticationTokenException"},
		{open, post("Nothing", "", "Content-Encoding", "gzip"), 400, "UnknownOperationException"},
		{open, post("ListTables", "{}", "Content-Encoding", "br"), 500, "InternalServerError"},
		{mounted, restRequest("POST", "/scheduler/none", "{}", "Content-Encoding", "br"), 404, "scheduler has no operation"},
		{mounted, restRequest("POST", "/scheduler/decode", "{}", "Content-Encoding", "br"), 500, "is not supported"},
		{mounted, restRequest("POST", "/lambda/decode", "{}", "Content-Encoding", "gzip"), 500, "the body is not gzip"},
		{mounted, restRequest("GET", "/", "", "Content-Encoding", "br"), 200, "healthy"},
	} {
		if got := do(c.server, c.in); got.status != c.status || !strings.Contains(got.body, c.code) {
			t.Errorf("%s %s: %d %s, want %d %s", c.in.Path, c.in.Header.Get("X-Amz-Target"), got.status, got.body, c.status, c.code)
		}
	}
}

// A body counts by its decompressed size, and no more than the limit is decompressed.
func TestBombs(t *testing.T) {
	s := newTestServer(t, Options{})
	large := bytes.Repeat([]byte(" "), bodyMax+1)
	for _, coding := range []string{codingGzip, codingDeflate} {
		body := string(pack(coding, large))
		if got := call(s, "ListTables", body, "Content-Encoding", coding); got.status != 413 || got.body != "" {
			t.Errorf("%s: %d %s", coding, got.status, got.body)
		}
		fits := string(pack(coding, append([]byte("{}"), large[:bodyMax-2]...)))
		if got := call(s, "ListTables", fits, "Content-Encoding", coding); got.status != 200 {
			t.Errorf("%s of 16 MB: %d %s", coding, got.status, got.body)
		}
	}
	if bodies, _ := s.Load(); bodies.Used() != 0 {
		t.Errorf("%d bytes are still taken", bodies.Used())
	}
}

// Answers are compressed from 4 KB on, for clients on other machines that accept it, and the
// checksum is of the bytes sent.
func TestCompressedAnswers(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	const get = `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`
	frame := len(`{"Item":{"k":{"S":"a"},"x":{"S":""}}}`)
	for _, size := range []int{4095, 4096, 12_288} {
		call(s, "PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"},"x":{"S":"`+strings.Repeat("x", size-frame)+`"}}}`)
		plain := call(s, "GetItem", get, "Accept-Encoding", "identity")
		want(t, plain.header.Get("Content-Encoding"), "")
		want(t, len(plain.body), size)
		for accepted, coding := range map[string]string{"br, gzip": codingGzip, "deflate, gzip": codingDeflate} {
			got := call(s, "GetItem", get, "Accept-Encoding", accepted)
			want(t, got.header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(got.body))), 10))
			if size < 4096 {
				want(t, got.header.Get("Content-Encoding"), "")
				continue
			}
			want(t, got.header.Get("Content-Encoding"), coding)
			want(t, unpacked(t, coding, got.body), plain.body)
		}
	}
	near := post("GetItem", get, "Accept-Encoding", "gzip")
	near.Local = true
	want(t, do(s, near).header.Get("Content-Encoding"), "")
}

func TestChooseCoding(t *testing.T) {
	for header, coding := range map[string]string{
		"": "", "gzip": "gzip", "deflate": "deflate", "GZIP": "gzip", "Deflate;Q=0.5": "deflate", "identity": "", "br": "", "zstd": "", "x-gzip": "", "xgzip": "",
		"gzip, deflate": "gzip", "deflate, gzip": "deflate", "br, gzip": "gzip", "identity, deflate": "deflate", "br , gzip ; q=1": "gzip",
		"gzip;q=0.5, deflate": "deflate", "gzip;q=0.5, deflate;q=0.4": "gzip", "gzip;q=0.5;x=y": "gzip", "deflate;x=y;q=0.1, gzip;q=0.2": "gzip",
		"gzip;q=0": "", "gzip;q=0.0, br": "", "gzip;q=0, deflate": "deflate", "gzip;q=0, deflate;q=0": "",
		"*": "gzip", "*;q=0": "", "*;q=0.5, deflate": "deflate", "*, deflate": "gzip", "gzip;q=0, *": "deflate", "gzip;q=0.1, *": "deflate", "gzip;q=0, deflate;q=0, *": "",
		"gzip;q=x": "", "gzip;q=2": "", "gzip;q=-1": "", "gzip;q=NaN": "", "gzip;q=": "", "gzip;": "gzip",
		",": "", ",,gzip,,": "gzip", " , deflate , ": "deflate", ";q=1": "", "gzip deflate": "",
	} {
		if got := chooseCoding(header); got != coding {
			t.Errorf("%q: %q, want %q", header, got, coding)
		}
	}
	// Of several headers the first counts.
	s := newTestServer(t, Options{})
	in := post("ListTables", "{}")
	in.Header.(interface{ Add(name, value string) }).Add("Accept-Encoding", "br")
	in.Header.(interface{ Add(name, value string) }).Add("Accept-Encoding", "gzip")
	out := newResponse()
	out.Body = bytes.Repeat([]byte("x"), packMin)
	out.seal(in)
	for _, f := range out.Header {
		if f.Name == "Content-Encoding" {
			t.Errorf("%s by the second header", f.Value)
		}
	}
	want(t, do(s, in).status, 200)
}

// For any header, the choice is a coding that the header names, or "*" does.
func FuzzChooseCoding(f *testing.F) {
	for _, header := range []string{"", "gzip", "deflate;q=0.5, *", "gzip;q=0,*;q=1", ",;=,"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		switch coding := chooseCoding(header); {
		case coding == "":
		case coding != codingGzip && coding != codingDeflate:
			t.Errorf("%q: %q", header, coding)
		case !strings.Contains(strings.ToLower(header), coding) && !strings.Contains(header, "*"):
			t.Errorf("%q: %q is not named", header, coding)
		}
	})
}

// Any body in any coding is read, or refused, without a panic, and plain ones stay as they are.
func FuzzDecompress(f *testing.F) {
	f.Add("gzip", pack(codingGzip, []byte("{}")))
	f.Add("deflate", pack(codingDeflate, []byte("{}")))
	f.Add("", []byte("{}"))
	f.Add("br", []byte{})
	s := New(Options{})
	f.Fuzz(func(t *testing.T, coding string, sent []byte) {
		in := post("ListTables", string(sent), "Content-Encoding", coding)
		body, hold, err := s.decompress(t.Context(), in)
		hold.Release()
		if err != nil || len(body) > bodyMax {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		if coding == "" && !bytes.Equal(body, sent) {
			t.Errorf("%q became %q", sent, body)
		}
	})
}
