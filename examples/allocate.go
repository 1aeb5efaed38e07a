// Allocates a cluster IP and two node ports for a Service that does not exist yet.
//
//	go run . FUNCTION CLUSTER REQUEST_ID
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

const request = `{"requestId": %q, "cluster": %q, "operation": "allocate", "items": [
	{"range": "serviceips", "next": true}, {"range": "servicenodeports", "next": true, "count": 2}]}`

func main() {
	log.SetFlags(0)
	function, cluster, requestID := os.Args[1], os.Args[2], os.Args[3]
	aws, err := config.LoadDefaultConfig(context.Background())
	check(err)
	reply, err := lambda.NewFromConfig(aws).Invoke(context.Background(), &lambda.InvokeInput{
		FunctionName: &function, Payload: fmt.Appendf(nil, request, requestID, cluster)})
	check(err)
	var answer struct {
		Outcome, ErrorMessage string
		Error                 struct{ Code, Message string }
		Items                 []struct {
			Range string
			Value any
		}
	}
	check(json.Unmarshal(reply.Payload, &answer))
	if reply.FunctionError != nil { // Run it again with the same id: it resumes.
		log.Fatal(answer.ErrorMessage)
	}
	if answer.Outcome == "refused" {
		log.Fatalf("%s: %s", answer.Error.Code, answer.Error.Message)
	}
	for _, item := range answer.Items {
		fmt.Println(item.Range, item.Value)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
