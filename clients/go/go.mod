module koordinator.example/koordinator/clients/go

go 1.22
