package wire

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// A client whose AWS_ENDPOINT_URL is this server sends the requests of all its services here.

// foreignService returns the service that a request is signed for, if it is another one than
// DynamoDB; otherwise "".
func foreignService(in *Request) string {
	if service := sigv4.Service(in.Header.Get("Authorization")); service != serviceDynamoDB {
		return service
	}
	return ""
}

// foreignText returns the message about a service that is not served.
func foreignText(service string) string {
	return "this is mayfly, which does not serve the API of " + service + " here; set the endpoint for DynamoDB alone: AWS_ENDPOINT_URL_DYNAMODB"
}

// writeForeign writes an error in the form that clients of a service read: JSON, or the XML of S3 or
// of query protocols such as STS's. The service consists of letters, digits and hyphens.
func writeForeign(in *Request, out *Response, service string) {
	code, text := "UnknownOperationException", foreignText(service)
	form, contentType := "<ErrorResponse><Error><Code>"+code+"</Code><Message>"+text+"</Message></Error></ErrorResponse>\n", "application/xml"
	switch {
	case strings.HasPrefix(in.Header.Get("Content-Type"), "application/x-amz-json"):
		form, contentType = `{"__type":"`+code+`","message":"`+text+`"}`, "application/x-amz-json-1.1"
	case service == "s3":
		form = "<Error><Code>" + code + "</Code><Message>" + text + "</Message></Error>\n"
	}
	out.set("Content-Type", contentType)
	out.w.buf = append(out.w.buf, form...)
}
